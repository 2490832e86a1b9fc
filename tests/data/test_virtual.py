"""Virtual examples depend on (seed, i) alone and are close to their originals; invariants of
molecules.
"""

import numpy as np
import pytest

from rfx.data import virtual
from rfx.data.virtual import Deformation
from rfx.errors import UsageError


@pytest.fixture
def images():
    """Seven grey images with a bright rectangle in their middle."""
    rows = np.zeros((7, 28, 28), np.uint8)
    rows[:, 8:20, 10:18] = np.random.default_rng(0).integers(100, 256, (7, 12, 8))
    return rows


def test_deformed_digits_depend_on_seed_and_number_alone(images):
    whole = virtual.deform(images, np.arange(60), seed=3)
    parts = [
        virtual.deform(images, np.arange(a, b), seed=3) for a, b in ((0, 5), (5, 31), (31, 60))
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(whole[:7], images)
    assert not np.array_equal(virtual.deform(images, np.arange(60), seed=4)[7:], whole[7:])
    for i in range(7, 60):
        assert 0 <= whole[i].min() and whole[i].max() <= 255
        assert not np.array_equal(whole[i], whole[i - 7])
        assert 0.6 < whole[i].sum() / images[i % 7].sum() < 1.6


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_no_deformation_leaves_the_image_and_a_shift_shifts_it(shift, images):
    how = Deformation(rotation=0, scale=0, shear=0, shift=shift, elastic=0)
    for i, image in enumerate(virtual.deform(images, np.arange(7, 21), 1, how)):
        original = images[i % 7].astype(float)
        if not shift:
            np.testing.assert_allclose(image, original, atol=1e-3)
        else:
            places = np.stack(np.indices((28, 28)))
            moved = [(places * part / part.sum()).sum(axis=(1, 2)) for part in (image, original)]
            assert np.all(np.abs(moved[0] - moved[1]) <= 3.01) and np.any(
                np.abs(moved[0] - moved[1]) > 0.01
            )


def test_crops_are_windows_and_flips_mirror_them(rng):
    images = rng.integers(0, 256, (5, 12, 10, 3)).astype(np.uint8)
    made = virtual.crops_and_flips(images, np.arange(200), 2, 7)
    assert made.shape == (200, 7, 7, 3)
    np.testing.assert_array_equal(
        made[50:90], virtual.crops_and_flips(images, np.arange(50, 90), 2, 7)
    )
    mirrored = 0
    for i, window in enumerate(made):
        source = images[i % 5]
        found = [
            flip
            for r in range(6)
            for c in range(4)
            for flip in (False, True)
            if np.array_equal(
                window,
                source[r : r + 7, c : c + 7][:, ::-1] if flip else source[r : r + 7, c : c + 7],
            )
        ]
        assert len(found) == 1
        mirrored += found[0]
    assert 60 < mirrored < 140


def molecules(rng):
    charges = np.array([[6, 1, 1, 1, 1, 0], [8, 1, 1, 0, 0, 0], [7, 7, 0, 0, 0, 0]])
    return charges, rng.normal(0, 1, (3, 6, 3)) * (charges > 0)[:, :, None]


def test_coulomb_matrices_and_what_no_permutation_changes(rng):
    charges, positions = molecules(rng)
    C = virtual.coulomb(charges, positions)
    assert C[0, 0, 0] == pytest.approx(0.5 * 6**2.4)
    distance = np.linalg.norm(positions[1, 0] - positions[1, 2]) / virtual.BOHR
    assert C[1, 0, 2] == C[1, 2, 0] == pytest.approx(8 / distance)
    assert np.all(C[2, 2:] == 0)
    for noise in (None, 1.0):
        made = virtual.permute(C, np.arange(90), 5, noise)
        np.testing.assert_array_equal(made[40:50], virtual.permute(C, np.arange(40, 50), 5, noise))
        np.testing.assert_allclose(
            virtual.eigenvalues(made), virtual.eigenvalues(C[np.arange(90) % 3]), atol=1e-9
        )
        np.testing.assert_allclose(
            virtual.by_row_norm(made), virtual.by_row_norm(C)[np.arange(90) % 3], atol=1e-12
        )
        assert np.all(made[2::3, 2:] == 0)  # absent atoms stay at the end
        assert len(np.unique(made[0::3].round(9), axis=0)) > 5
    norms = np.linalg.norm(virtual.by_row_norm(C), axis=2)
    assert np.all(np.diff(norms, axis=1) <= 1e-12)
    assert np.all(np.diff(np.abs(virtual.eigenvalues(C)), axis=1) <= 1e-9)
    assert virtual.triangles(C).shape == (3, 21)
    np.testing.assert_allclose(virtual.triangles(C)[0, :6], C[0, 0])
    np.testing.assert_array_equal(virtual.from_triangles(virtual.triangles(C)), C)
    with pytest.raises(UsageError, match="rows of 22 numbers are not upper triangles"):
        virtual.from_triangles(np.zeros((2, 22)))


def test_bags_of_bonds_are_the_entries_by_pairs_of_elements(rng):
    charges, positions = molecules(rng)
    C = virtual.coulomb(charges, positions)
    bags = virtual.bags_of_bonds(C)
    # diagonals: 4 H, 1 C, 2 N, 1 O; pairs: 6 HH, 4 HC, 2 HO, 1 NN
    assert bags.shape == (3, 8 + 13)
    for row, matrix in zip(bags, C):
        np.testing.assert_allclose(
            np.sort(row[row != 0]),
            np.sort(virtual.triangles(matrix[None])[virtual.triangles(matrix[None]) != 0]),
        )
    np.testing.assert_allclose(virtual.bags_of_bonds(virtual.permute(C, np.arange(3), 4)), bags)
