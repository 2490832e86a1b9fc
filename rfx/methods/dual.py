"""What the methods by dual coordinate ascent share: a variable for every row, so the rows are finitely many and known beforehand."""

from rfx.data.stream import Stream
from rfx.errors import UsageError
from rfx.methods import examples
from rfx.methods.streaming import StreamMethod
from rfx.options import Option

GAP = Option("gap", bool, "Compute the duality gap at the end, which takes another pass over the rows.", default=False)


class DualMethod(StreamMethod):
    """Steps are told which rows of the set they are for. info["gap"]: P - D at the end, un-normalised, with --gap."""

    incremental = False
    without = ("softmax",)
    default_losses = StreamMethod.default_losses | {"multiclass": "hinge"}

    def check_given(self, given):
        super().check_given(given)
        if examples.endless(self.params):
            raise UsageError(f"--virtual has no end, but method {self.name} keeps a number for every row; give --virtual-copies")

        if self.params["replace"]:
            raise UsageError(f"--replace may give a step the same row twice, which method {self.name} does not take; leave it out")

    def fit_stream(self, source):
        if not source.rewindable:
            raise UsageError(f"method {self.name} has to know the number of rows beforehand, but {source.name} is read once; give a file")
        if self.params["head"] is not None:
            raise UsageError(f"--head is {self.params['head']}, but method {self.name} has to count all rows; leave it out")
        if self.params["class_weight"] is not None:
            raise UsageError(f"method {self.name} has to know the weights of all rows beforehand; --class-weight is not for --stream")
        return super().fit_stream(source)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        raise UsageError(f"method {self.name} keeps a number for every row of a set; use fit, or another method")

    def _step(self, X, Y, index, own):
        return self.solver.step(X, Y, index)

    def _fit_source(self, source, chunks, buffer, start, classes=None):
        super()._fit_source(source, chunks, buffer, start, classes)
        if self.params["gap"]:
            source.rewind()

            def batches():
                for X, y, index in Stream(source, 4096):
                    yield self.inputs.transform(X, self._input_dtype()), self._encode_rows(y), index

            primal, dual = self.solver.bounds(batches())
            self.info |= {"objective": self.n_counted * primal, "gap": self.n_counted * (primal - dual)}
        return self
