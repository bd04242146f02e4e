"""What is random follows from the seed and the epoch."""

import torch

from lookhops.training.device import dropout_key, shuffled
from lookhops.training.runs import FINAL, member_seed


def test_every_seed_and_epoch_has_a_key_of_its_own():
    seeds, epochs = (0, 1, 11, 2**31 - 1, 2**31, 2**32 - 1), (1, 2, 500, 10**6)
    keys = [dropout_key(seed, epoch) for seed in seeds for epoch in epochs]
    assert len(set(keys)) == len(keys)
    assert torch.tensor(keys).tolist() == keys  # they fit 64 bits


def test_an_epochs_order_is_the_same_each_time_and_another_in_the_next():
    train = torch.arange(5, 55)
    first, again, other = (shuffled(train, 11, epoch) for epoch in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(first.sort().values, train)


def test_members_have_seeds_of_their_own():
    runs = [(seed, member) for seed in (FINAL, 0, 11, 2**32 - 1) for member in range(50)]
    seeds = [member_seed(*run) for run in runs]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert [member_seed(seed, 0) for seed in (0, 11)] == [0, 11]
