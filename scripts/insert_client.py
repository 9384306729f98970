#!/usr/bin/env python3
"""The insert statements of the Insert Benchmark, as small as they can be written with psycopg: what does a Python client cost?

    insert_client.py --dsn 'host=/tmp dbname=postgres' --rows 200000              # l.i0: 100 rows in a statement
    insert_client.py --dsn ... --rows 200000 --write-rows 40000                   # and then l.x and l.i1

Makes the table pi1 anew and does what the published client does with one client: text INSERTs of many rows each, autocommit, random values
built row by row in Python; in l.i1 also a DELETE of as many of the oldest rows, on a connection of its own. The published client has a process
that makes statements, one that sends inserts and one that sends deletes, with queues between them, and a limiter and a
histogram on each; all that is left out, so what this costs is less than what the published client costs.

Prints a line of JSON for each step: rows inserted, CPU of this process (user and system) and seconds.
"""
import argparse
import base64
import json
import os
import random
import time

import psycopg2

LOAD_BATCH = 100
WRITE_BATCH = 50
BUFFER_BYTES = 4 << 20

CREATE = (
    "DROP TABLE IF EXISTS pi1",
    "CREATE TABLE pi1 (transactionid bigserial PRIMARY KEY, dateandtime timestamp without time zone, cashregisterid int NOT NULL, "
    "customerid int NOT NULL, productid int NOT NULL, price int NOT NULL, data varchar(4000))",
    "ALTER SEQUENCE pi1_transactionid_seq CACHE 1000",
)
INDEXES = (
    "CREATE INDEX pi1_marketsegment ON pi1 (productid, customerid, price)",
    "CREATE INDEX pi1_registersegment ON pi1 (cashregisterid, customerid, price)",
    "CREATE INDEX pi1_pdc ON pi1 (price, dateandtime, customerid)",
)


class Rows:
    """Statements that insert random rows."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        letters = base64.b64encode(self.random.randbytes(BUFFER_BYTES * 3 // 4))
        self.letters = letters.decode("ascii")

    def data(self):
        draw = self.random
        length = draw.randint(10, 20)
        drawn = int(length * 0.75 * 0.5)
        start = draw.randrange(len(self.letters) - drawn)
        return self.letters[start : start + drawn] + "a" * (length - drawn)

    def statement(self, count):
        draw = self.random
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        rows = [
            "('%s',%d,%d,%d,%.2f,'%s')"
            % (
                now,
                draw.randrange(1000),
                draw.randrange(100_000),
                draw.randrange(10_000),
                draw.randrange(500),
                self.data(),
            )
            for _ in range(count)
        ]
        return "INSERT INTO pi1 (dateandtime,cashregisterid,customerid,productid,price,data) VALUES " + ",".join(rows)


def connect(dsn):
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    return connection.cursor()


def told(step, rows, work):
    """Does the work and prints what it cost."""
    cpu, began = time.process_time(), time.perf_counter()
    work()
    cost = {
        "step": step,
        "rows": rows,
        "cpu_s": time.process_time() - cpu,
        "seconds": time.perf_counter() - began,
    }
    print(json.dumps(cost), flush=True)


def load(cursor, rows, count):
    for _ in range(count // LOAD_BATCH):
        cursor.execute(rows.statement(LOAD_BATCH))


def write(inserts, deletes, rows, count):
    deletes.execute("SELECT min(transactionid) FROM pi1")
    oldest = deletes.fetchone()[0]
    for _ in range(count // WRITE_BATCH):
        inserts.execute(rows.statement(WRITE_BATCH))
        deletes.execute(
            "DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE transactionid >= %d "
            "ORDER BY transactionid ASC LIMIT %d)" % (oldest, WRITE_BATCH)
        )
        oldest += WRITE_BATCH


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dsn", required=True, help="where the server is; its table pi1 is dropped")
    parser.add_argument("--rows", type=int, default=200_000, help="rows of l.i0")
    parser.add_argument("--write-rows", type=int, default=0, help="rows of l.i1; 0: no l.x and l.i1")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rows = Rows(asked.seed)
    inserts = connect(asked.dsn)
    for statement in CREATE:
        inserts.execute(statement)
    told("l.i0", asked.rows, lambda: load(inserts, rows, asked.rows))
    if asked.write_rows:
        inserts.execute(rows.statement(LOAD_BATCH))
        for statement in INDEXES:
            inserts.execute(statement)
        deletes = connect(asked.dsn)
        told("l.i1", asked.write_rows, lambda: write(inserts, deletes, rows, asked.write_rows))


if __name__ == "__main__":
    os.environ.setdefault("PGAPPNAME", "insert_client")
    main()
