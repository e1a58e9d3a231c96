"""The means of all numeric columns of two CSV files, by a data-frame library: what the part `scoring` compares with.

Called as `scoring.py LIBRARY THREADS BASELINE CANDIDATE`. Says `ready` when the library is loaded. For each line
`time` it reads both files once and answers `PROCESSOR_SECONDS WALL_SECONDS PEAK_KIB`; for a line `means` it answers
with the means that it found last, as JSON. It ends with its input. It judges nothing.
"""

import json
import os
import sys
import time


def with_pandas(threads):
    import pandas

    pandas.set_option("mode.max_threads", int(threads))  # large files are parsed by several
    return lambda path: pandas.read_csv(path).mean(numeric_only=True).to_dict()


def with_polars(threads):
    os.environ["POLARS_MAX_THREADS"] = threads  # looked at when it is loaded
    import polars
    from polars import selectors

    def means(path):
        found = polars.scan_csv(path).select(selectors.numeric().mean())
        return found.collect(engine="streaming").row(0, named=True)

    return means


def with_duckdb(threads):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {threads}")

    def means(path):
        # Naming the one column of text spares it to look at the file twice.
        query = "SELECT avg(COLUMNS(* EXCLUDE (status))) FROM read_csv(?)"
        found = connection.execute(query, [path])
        names = [column[0] for column in found.description]
        return dict(zip(names, found.fetchall()[0]))

    return means


def peak_memory():
    with open("/proc/self/status") as status:
        return next(line.split()[1] for line in status if line.startswith("VmHWM:"))


def main(library, threads, *files):
    means = {"pandas": with_pandas, "polars": with_polars, "duckdb": with_duckdb}[library](threads)
    found = []
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "means":
            print(json.dumps(found), flush=True)
            continue
        processor, wall = time.process_time(), time.perf_counter()
        found = [means(path) for path in files]
        processor, wall = time.process_time() - processor, time.perf_counter() - wall
        print(processor, wall, peak_memory(), flush=True)


main(*sys.argv[1:])
