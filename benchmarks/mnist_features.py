"""Write the data set mnist-features: for the images of MNIST, the 1,568 outputs of the second
pooling layer of a convolutional network.

The network is trained on the 60,000 training images, without virtual examples. The script prints
its test error. It needs torch (`pip install torch`).

    python benchmarks/mnist_features.py FOLDER

It writes mnist-features.train and mnist-features.test to FOLDER in LIBSVM format, some 700 MB. With
RFX_MIRROR=FOLDER rfx finds them there.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

from rfx.data import load

CHANNELS = (32, 32)  # 32 planes of 7 x 7 after the second pooling layer


def network():
    first, second = CHANNELS
    lower = nn.Sequential(
        nn.Conv2d(1, first, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(first, second, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
    )
    upper = nn.Sequential(
        nn.Linear(49 * second, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10)
    )
    return lower, upper


def images(X):
    pixels = np.asarray(X.todense() if hasattr(X, "todense") else X, np.float32)
    # the last pixels are zero in every image, and are not inputs of the data set
    padded = np.pad(pixels / 255, ((0, 0), (0, 784 - pixels.shape[1])))
    return torch.tensor(padded).reshape(-1, 1, 28, 28)


def in_batches(function, X, size=2000):
    with torch.no_grad():
        return torch.cat([function(part) for part in X.split(size)])


def train(lower, upper, X, y, epochs):
    parameters = [*lower.parameters(), *upper.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    steps = epochs * -(-len(X) // 128)
    falling = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    for epoch in range(epochs):
        upper.train()
        total = 0.0
        for rows in torch.randperm(len(X)).split(128):
            loss = nn.functional.cross_entropy(upper(lower(X[rows])), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            falling.step()
            total += loss.item() * len(rows)
        print(f"epoch {epoch + 1} of {epochs}: loss {total / len(X):.4f}", flush=True)
    upper.eval()


def write(path, X, y):
    """Write LIBSVM text with three digits; the file is complete or absent."""
    part = path.with_name(path.name + ".part")
    with part.open("w") as file:
        for row, label in zip(X, y):
            (found,) = np.nonzero(row)
            pairs = " ".join(f"{k + 1}:{row[k]:.3g}" for k in found)
            file.write(f"{label:g} {pairs}\n")
    part.replace(path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    data = load("mnist", split="wu2016")
    X, X_test = images(data.X_train), images(data.X_test)
    y, y_test = (torch.tensor(y.astype(np.int64)) for y in (data.y_train, data.y_test))
    lower, upper = network()
    train(lower, upper, X, y, options.epochs)
    options.folder.mkdir(parents=True, exist_ok=True)
    for role, rows, labels in (("train", X, y), ("test", X_test, y_test)):
        Z = in_batches(lower, rows)
        wrong = (in_batches(upper, Z).argmax(1) != labels).float().mean().item()
        print(f"{role}: the network's error is {100 * wrong:.2f} %", flush=True)
        write(options.folder / f"mnist-features.{role}", Z.numpy(), labels.numpy())


if __name__ == "__main__":
    main()
