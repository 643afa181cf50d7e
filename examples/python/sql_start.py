"""Starts a run within a transaction of your own: the row of the order and its run are committed together, or neither is.

    DATABASE_URL=postgres://... python3 sql_start.py 42 A-1 commit
    DATABASE_URL=mysql://...    python3 sql_start.py 42 A-1 rollback

It inserts into a table of yours: CREATE TABLE orders (id INTEGER PRIMARY KEY, sku VARCHAR(20) NOT NULL). To need nothing but
Python, it sends its SQL through psql, mariadb or mysql, in one session. With a driver, such as psycopg or PyMySQL, you send the
same statements with parameters.
"""

import json
import os
import shutil
import subprocess
import sys
from urllib.parse import unquote, urlsplit


def postgres(url, order, sku, end):
    """psql writes its variables as quoted literals (:'name')."""
    values = {"order": order, "sku": sku, **json_values(order, sku)}
    script = f"""
        BEGIN;
        INSERT INTO orders (id, sku) VALUES (:'order'::integer, :'sku');
        SELECT pawl_start('order', :'input'::jsonb, :'options'::jsonb);
        {end};
    """
    settings = [f"--set={name}={value}" for name, value in {"ON_ERROR_STOP": 1, **values}.items()]
    return run(
        ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", *settings],
        script,
        # The environment, and not the command line, which every user of the machine can read.
        PGHOST=url.hostname,
        PGPORT=str(url.port or 5432),
        PGUSER=unquote(url.username or ""),
        PGPASSWORD=unquote(url.password or ""),
        PGDATABASE=unquote(url.path[1:]),
        PGCLIENTENCODING="UTF8",
    )


def mariadb(url, order, sku, end):
    values = json_values(order, sku)
    script = f"""
        START TRANSACTION;
        INSERT INTO orders (id, sku) VALUES ({literal(order)}, {literal(sku)});
        CALL pawl_start('order', {literal(values["input"])}, {literal(values["options"])}, @run_id);
        SELECT @run_id;
        {end};
    """
    program = next((name for name in ("mariadb", "mysql") if shutil.which(name)), "mariadb")
    return run(
        [
            *(program, "--batch", "--skip-column-names", "--default-character-set=utf8mb4"),
            *(f"--host={url.hostname}", f"--port={url.port or 3306}", "--protocol=TCP"),
            *(f"--user={unquote(url.username or '')}", unquote(url.path[1:])),
        ],
        script,
        MYSQL_PWD=unquote(url.password or ""),
    )


def json_values(order, sku):
    """The order has one run, however often this is tried."""
    return {"input": json.dumps({"sku": sku}), "options": json.dumps({"idempotencyKey": f"order-{order}"})}


def literal(text):
    """Hexadecimal, so that no character of the text can end the literal."""
    return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)"


def run(command, script, **environment):
    """Returns what the program prints. It ends its session at the first error, and the database rolls back."""
    try:
        done = subprocess.run(
            command, input=script, env={**os.environ, **environment}, capture_output=True, encoding="utf-8", check=True
        )
    except FileNotFoundError:
        sys.exit(f"{command[0]} is not installed; it comes with the client programs of the database.")
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr.strip())
    return done.stdout.strip()


def main(order, sku, end):
    if end not in ("commit", "rollback"):
        sys.exit("The last argument is commit or rollback.")
    url = urlsplit(os.environ["DATABASE_URL"])
    send = postgres if url.scheme.startswith("postgres") else mariadb
    print(send(url, order, sku, end.upper()))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
