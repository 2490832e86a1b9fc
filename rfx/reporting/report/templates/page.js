"use strict";
(function () {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // sorting: a button in every heading; numbers by their value, the rest as text; the third click gives the order back
  const value = (cell) => {
    const text = (cell.querySelector(".o") || cell).textContent.trim();
    const found = text.replace(/,/g, "").match(/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?/i);
    return found ? Number(found[0]) : text;
  };
  const order = (one, other) => {
    const [a, b] = [typeof one, typeof other];
    if (a !== b) return a === "number" ? -1 : 1;
    return a === "number" ? one - other : one.localeCompare(other, "en", { numeric: true });
  };
  for (const table of all("table.sortable")) {
    const body = table.tBodies[0];
    const first = [...body.rows];
    all("thead th", table).forEach((head) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort") || "none"];
        all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
        let rows = first;
        if (next !== "none") {
          head.setAttribute("aria-sort", next);
          const sign = next === "ascending" ? 1 : -1;
          rows = first.map((row) => [value(row.cells[head.cellIndex]), row]);
          rows = rows.sort((a, b) => sign * order(a[0], b[0])).map((pair) => pair[1]);
        }
        body.append(...rows);
      });
    });
  }

  // filters: what is of another data set or method is hidden
  const form = document.getElementById("filters");
  const [byData, byMethod, shown] = ["by-data", "by-method", "shown"].map((id) => document.getElementById(id));
  const filter = () => {
    const [data, method] = [byData.value, byMethod.value];
    for (const one of all("[data-d], [data-m]")) {
      const other = (data && one.dataset.d && one.dataset.d !== data) || (method && one.dataset.m && one.dataset.m !== method);
      one.hidden = Boolean(other);
    }
    const what = [data && "data set " + data, method && "method " + method].filter(Boolean);
    shown.textContent = what.length ? "Only " + what.join(" and ") + "." : "";
  };
  form.hidden = false;
  form.addEventListener("change", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());

  // on paper everything is open
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open]):not(.settings)");
    closed.forEach((one) => (one.open = true));
  });
  addEventListener("afterprint", () => closed.forEach((one) => (one.open = false)));
})();
