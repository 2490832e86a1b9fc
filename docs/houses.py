"""Write houses.csv and new.csv: generated sales of houses, with words, dates and missing cells."""

import numpy as np
import pandas as pd

rng, n = np.random.default_rng(0), 2000
town = rng.choice(["Ashford", "Bexley", "Cromer", "Dover", "Epsom"], n)
heating = rng.choice(["gas", "oil", "heat pump"], n)
size, garden = rng.gamma(9, 13, n).round(), rng.gamma(2, 150, n).round()
built, day = rng.integers(1900, 2020, n), rng.integers(0, 1095, n)
km = rng.gamma(2, 4, n).round(1)

per_m2 = pd.Series(town).map({"Ashford": 3, "Bexley": 5, "Cromer": 2, "Dover": 3, "Epsom": 5})
per_m2 *= (0.5 + 0.5 * np.exp(-km / 6)) * (1 - 0.25 * np.sin((built - 1900) / 38))
price = (
    per_m2 * size + 0.05 * garden * np.exp(-km / 10) + 0.02 * day + 15 * (heating == "heat pump")
)

table = pd.DataFrame({"id": [f"H{row:04}" for row in range(n)], "town": town, "heating": heating})
table["sold"] = pd.Timestamp("2023-01-01") + pd.to_timedelta(day, "D")
table = table.assign(size=size, garden=garden, built=built, km_to_station=km)
for column in ("heating", "garden", "built"):
    table.loc[rng.uniform(size=n) < 0.02, column] = None
table["price"] = (price * rng.normal(1, 0.05, n)).round(1)
table[:1000].to_csv("houses.csv", index=False)
table[1000:].to_csv("new.csv", index=False)
