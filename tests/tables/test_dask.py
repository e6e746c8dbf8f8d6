"""A cluster of processes gives what one process gives, also when one of them dies."""

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from skcoral import CORAL
from skcoral.data.moments import Moments
from skcoral.exceptions import InvalidArgumentError, InvalidTableError
from skcoral.tables import dask as coral_dask

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5)) @ rng.normal(size=(5, 5)) + [0.0, 1e7, 3.0, -2.0, 0.0]
    return pd.DataFrame(X, columns=list("abcde"))


def test_data_frame(frame):
    table = dd.from_pandas(frame, npartitions=13)
    coral = coral_dask.fit(CORAL(rho_min=0.3), table)
    whole = CORAL(rho_min=0.3).fit(frame)
    np.testing.assert_allclose(coral.T_, whole.T_, atol=1e-11)
    assert list(coral.feature_names_in_) == list("abcde")
    lazy = coral_dask.transform(coral, table)
    assert isinstance(lazy, dd.DataFrame)
    pd.testing.assert_frame_equal(
        lazy.compute(),
        pd.DataFrame(coral.transform(frame), columns=frame.columns, index=frame.index),
    )


def test_array_in_any_chunks(frame):
    rows = da.from_array(frame.to_numpy(), chunks=(170, 2))
    coral = coral_dask.fit(CORAL(), rows)
    np.testing.assert_allclose(coral.T_, CORAL().fit(frame.to_numpy()).T_, atol=1e-11)
    assert not hasattr(coral, "feature_names_in_")
    lazy = coral_dask.transform(coral, rows)
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), coral.transform(frame.to_numpy()), atol=1e-12)
    single = rows.astype(np.float32)
    assert coral_dask.transform(coral, single).dtype == np.float32
    assert coral_dask.transform(coral, single).compute().dtype == np.float32


def test_weights_and_empty_partitions(frame):
    counts = np.random.default_rng(1).integers(0, 3, size=len(frame))
    table = dd.from_pandas(frame.assign(count=counts), npartitions=5)
    table = table[table["a"] > -1e9]
    empty = table[table["a"] > 1e9]
    both = dd.concat([table, empty])
    features = both[list("abcde")]
    coral = coral_dask.fit(CORAL(), features, sample_weight=both["count"])
    np.testing.assert_allclose(coral.T_, CORAL().fit(frame, sample_weight=counts).T_, atol=1e-11)
    assert len(coral_dask.transform(coral, features).compute()) == len(frame)


def test_what_is_refused(frame):
    labelled = dd.from_pandas(frame.assign(label="x"), npartitions=2)
    with pytest.raises(InvalidTableError, match="`label` hold no numbers"):
        coral_dask.fit(CORAL(), labelled)
    with pytest.raises(InvalidTableError, match=r"numpy\.ndarray"):
        coral_dask.fit(CORAL(), frame.to_numpy())
    rows = da.from_array(frame.to_numpy(), chunks=(500, 5))
    with pytest.raises(InvalidTableError, match="divided in the same way"):
        coral_dask.moments(rows, sample_weight=da.ones(2000, chunks=100))
    with pytest.raises(InvalidArgumentError, match="all rows are needed"):
        coral_dask.fit(CORAL(covariance="OAS"), rows)
    spoiled = frame.copy()
    spoiled.loc[1500, "d"] = np.nan
    with pytest.raises(InvalidTableError, match="`d`"):
        coral_dask.fit(CORAL(), dd.from_pandas(spoiled, npartitions=4))


def test_whole_numbers_after_an_empty_chunk_stay_fractions(frame):
    X = np.round(frame.to_numpy() * 10).astype(int)
    rows = da.from_array(X, chunks=((0, 2000), (5,)))
    coral = coral_dask.fit(CORAL(), rows)
    got = coral_dask.transform(coral, rows).compute()
    np.testing.assert_allclose(got, coral.transform(X), atol=1e-12)


def test_names_that_are_no_text_and_cells_without_a_number(frame):
    numbered = frame.set_axis(range(5), axis=1)
    table = dd.from_pandas(numbered, npartitions=3)
    coral = coral_dask.fit(CORAL(), table)
    assert not hasattr(coral, "feature_names_in_")
    got = coral_dask.transform(coral, table).compute()
    np.testing.assert_allclose(got, coral.transform(numbered), atol=1e-12)
    nullable = frame.astype("Float64")
    nullable.loc[7, "c"] = pd.NA
    with pytest.raises(InvalidTableError, match="`c`"):
        coral_dask.fit(CORAL(), dd.from_pandas(nullable, npartitions=3))


def test_what_is_not_on_the_cluster(frame):
    table = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(InvalidTableError, match=r"Dask Series or Array.*numpy\.ndarray"):
        coral_dask.fit(CORAL(), table, sample_weight=np.ones(2000))
    coral = CORAL().fit(frame)
    for data in (frame, frame.to_numpy(), table["a"]):
        with pytest.raises(InvalidTableError, match="is needed"):
            coral_dask.transform(coral, data)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_a_worker_is_killed_in_the_middle(tmp_path):
    distributed = pytest.importorskip("distributed")
    from dask import delayed

    def make_rows(i):
        rng = np.random.default_rng(i)
        return pd.DataFrame(
            rng.normal(size=(50, 3)) @ [[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1]], columns=list("abc")
        )

    folder = str(tmp_path)

    def slow_partition(i):
        with open(os.path.join(folder, f"{i}-{os.getpid()}-{time.monotonic_ns()}"), "w"):
            pass  # a trace of who made these rows
        time.sleep(0.3)
        return make_rows(i)

    parts = [delayed(slow_partition)(i) for i in range(8)]
    table = dd.from_delayed(parts, meta=make_rows(0).iloc[:0], verify_meta=False)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        ThreadPoolExecutor(1) as background,
    ):
        workers = set(client.run(os.getpid).values())
        assert len(workers) == 2
        assert os.getpid() not in workers
        fitting = background.submit(coral_dask.fit, CORAL(), table)
        deadline = time.monotonic() + 60
        while len(os.listdir(folder)) < 4:
            assert time.monotonic() < deadline, "the cluster did not start working"
            time.sleep(0.02)
        assert not fitting.done()
        victim = int(sorted(os.listdir(folder))[0].split("-")[1])
        assert victim in workers
        os.kill(victim, signal.SIGKILL)
        coral = fitting.result(timeout=90)
    # what the dead worker had done was done again by others
    assert len(os.listdir(folder)) > 8
    expected = Moments.from_rows(np.vstack([make_rows(i) for i in range(8)]), names=list("abc"))
    np.testing.assert_allclose(coral.moments_.comoment, expected.comoment, rtol=1e-13)
    assert coral.n_samples_seen_ == 400
