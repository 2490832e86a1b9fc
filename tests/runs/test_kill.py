"""A few kills; `python tests/kill.py 1000` and `python tests/kill_workers.py 20` do as many as
there is time for.
"""

import random
import signal
import time

import pytest
from kill import Jobs, kill
from kill_workers import Plans, Trainings

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name, count", [("train", 2), ("stream", 2), ("run", 2)])
def test_a_kill_loses_nothing(tmp_path, name, count):
    kill(Jobs(tmp_path), name, count, random.Random(name))


@pytest.fixture(scope="module")
def trainings(tmp_path_factory):
    pytest.importorskip("distributed")
    plain = ("--kernel", "gaussian", "--metric", "none")
    return Trainings(tmp_path_factory.mktemp("trainings"), rows=3000, more=plain)


@pytest.mark.parametrize("moment", ["start", "middle"])
def test_a_worker_that_is_killed_changes_no_bit_of_the_model(trainings, moment):
    generator = random.Random(moment)
    while not trainings.kill("rf squared_hinge", moment, generator):
        trainings.seconds.clear()  # the training had ended before: the machine is less busy now


def test_a_worker_that_is_killed_while_it_starts_loses_no_row(tmp_path):
    pytest.importorskip("distributed")
    generator = random.Random(0)
    while not Plans(tmp_path, 2).kill("plan", "start", generator):
        pass


@pytest.mark.parametrize(
    "number, code", [(signal.SIGTERM, 130), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_workers_and_their_folders_go_with_the_command(trainings, number, code):
    process = trainings.begin("rf squared_hinge")
    while not trainings.workers(process):
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(600) == code
    trainings.check_nothing_left()
