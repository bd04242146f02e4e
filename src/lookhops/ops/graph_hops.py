"""What kernels are made of that take one graph from hop to hop: parts of a program, no kernels.

Nothing in a loop over rows lets warps wait for each other: each has rows of its own. What is said
of channels has two axes from the start, and what is said of rows is never stored alone, so that no
value changes its place in registers. A matrix is (offsets, columns, values, most entries of a row
of this graph), and hops are (where T_0 stands, where T_1 does, where the further ones do, the
elements of each).
"""

from lookhops.ops.gpu import tl, triton

if triton is not None:
    ENTRIES = tl.constexpr(4)  # of each row whose features are asked for at once
    FEW = tl.constexpr(8)  # entries of a row, up to which all rows of a graph are taken alike

    @triton.jit
    def padding_rows(program, end, graphs_a_slice, rows_a_slice, padding):
        """First and last row of the padding that a program past the graphs' fills."""
        part = program // padding
        first = tl.load(end + (part + 1) * graphs_a_slice - 1)
        last = (part + 1) * rows_a_slice + first * 0
        each = (last - first + padding - 1) // padding
        first += (program % padding) * each
        return first, tl.minimum(last, first + each)

    @triton.jit
    def most_entries(row_ptr, alive, first, last):
        """The most entries of a row of a graph; then offsets and masks lie in the cache."""
        most = tl.zeros((128,), tl.int32)
        for begin in range(first, last, 128):
            row = begin + tl.arange(0, 128)
            exists = row < last
            count = tl.load(row_ptr + row + 1, mask=exists, other=0)
            count -= tl.load(row_ptr + row, mask=exists, other=0)
            if alive is not None:
                exists = exists & (tl.load(alive + row, mask=exists, other=0) != 0)
            most = tl.maximum(most, tl.where(exists, count, 0).to(tl.int32))
        return tl.max(most, axis=0)

    @triton.jit
    def some_rows(begin, last, alive, width, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
        """Rows, which exist, which of them are alive, and the places of their elements."""
        row = begin + tl.arange(0, ROWS)
        exists = row < last
        lives = exists
        if alive is not None:
            lives = exists & (tl.load(alive + row, mask=exists, other=0) != 0)
        place = row.to(tl.int64)[:, None] * width + tl.arange(0, CHANNELS)[None, :]
        return row, exists, lives, place

    @triton.jit
    def load_vector(pointer, inside, CHANNELS: tl.constexpr):
        """A row of channels in single precision."""
        pointer += tl.arange(0, CHANNELS)[None, :]
        return tl.load(pointer, mask=inside, other=0.0).to(tl.float32)

    @triton.jit
    def load_weights(weight, inside, width, K: tl.constexpr, CHANNELS: tl.constexpr):
        """The weights of all hops."""
        found = (tl.zeros((1, CHANNELS), tl.float32),) * (K + 1)
        for j in tl.static_range(0, K + 1):
            own = load_vector(weight + j * width, inside, CHANNELS)
            found = found[:j] + (own,) + found[j + 1 :]
        return found

    @triton.jit
    def hop_at(hops, j: tl.constexpr):
        """Where T_j stands."""
        zero, one, more, size = hops
        if j == 0:
            there = zero
        elif j == 1:
            there = one
        else:
            there = more + (j - 2) * size
        return there

    @triton.jit
    def load_hop(hops, shift, place, mask, j: tl.constexpr):
        """T_j of some rows; to T_0 the shift is still to be added."""
        hop = tl.load(hop_at(hops, j) + place, mask=mask, other=0.0).to(tl.float32)
        if j == 0:
            hop = tl.where(mask, hop + shift, 0.0)
        return hop

    @triton.jit
    def gather_hop(matrix, hops, shift, row, lives, inside, width, j: tl.constexpr):
        """The sums over neighbours of T_j, for some rows."""
        row_ptr, column, value, most = matrix
        channel = tl.arange(0, inside.shape[1])[None, :]
        start = tl.load(row_ptr + row, mask=lives, other=0)
        end = tl.load(row_ptr + row + 1, mask=lives, other=0)
        if most > FEW:  # else no warp waits for the others
            most = tl.max((end - start).to(tl.int32), axis=0)
        total = tl.zeros((row.shape[0], inside.shape[1]), tl.float32)
        for first in range(0, most, ENTRIES):
            for one in tl.static_range(ENTRIES):
                entry = start + first + one
                here = entry < end
                source = tl.load(column + entry, mask=here, other=0).to(tl.int64)
                factor = tl.load(value + entry, mask=here, other=0.0).to(tl.float32)
                there = hop_at(hops, j) + source[:, None] * width + channel
                asked = (factor != 0)[:, None] & inside  # not what masks have taken out
                part = tl.load(there, mask=asked, other=0.0).to(tl.float32)
                if j == 0:
                    part += shift
                total += part * factor[:, None]
        return total

    @triton.jit
    def write_hops(
        matrix,
        hops,
        shift,
        alive,
        first,
        last,
        inside,
        width,
        K: tl.constexpr,
        CHEBYSHEV: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """T_1 to T_(K - 1) of a graph, one after the other; dead nodes get zero."""
        for j in tl.static_range(1, K):
            for begin in range(first, last, ROWS):
                row, exists, lives, place = some_rows(begin, last, alive, width, ROWS, CHANNELS)
                now = gather_hop(matrix, hops, shift, row, lives, inside, width, j - 1)
                if CHEBYSHEV and j > 1:
                    mask = lives[:, None] & inside
                    now = 2 * now - load_hop(hops, shift, place, mask, j - 2)
                into = hop_at(hops, j)
                tl.store(into + place, now.to(into.dtype.element_ty), mask=exists[:, None] & inside)
            tl.debug_barrier()

    @triton.jit
    def scale_factors(found, score, row, lives, NORMALIZE: tl.constexpr):
        """1 / |z'| of some rows, or one, and that times their scores."""
        unit = tl.full(row.shape, 1.0, tl.float32)
        if NORMALIZE:
            norm = tl.sqrt(tl.sum(found * found, axis=1))
            unit = 1.0 / tl.where(norm > 1e-12, norm, 1.0)
        factor = unit
        if score is not None:
            factor = unit * tl.load(score + row, mask=lives, other=0.0).to(tl.float32)
        return unit, factor
