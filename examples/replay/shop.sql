-- Statements of the shop that make-shop makes. Weights are calls.
SET search_path TO shop;

-- name: order_by_id
-- weight: 400
SELECT * FROM orders WHERE id = 4711;

-- name: orders_of_a_customer
-- weight: 300
SELECT id, at, total FROM orders WHERE customer_id = 17 AND at > '2026-05-01' ORDER BY at, id;

-- name: orders_of_the_largest_customer
-- weight: 20
SELECT count(*), sum(total) FROM orders WHERE customer_id = 1;

-- name: open_orders
-- weight: 30
SELECT count(*) FROM open_orders WHERE total > 800;

-- name: tagged
-- weight: 40
SELECT id FROM orders WHERE tags @> ARRAY['t7', 't8'] ORDER BY id;

-- name: largest_by_city
-- weight: 5
SELECT c.city, max(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id
GROUP BY c.city ORDER BY c.city;

-- name: not_ordered
-- weight: 10
SELECT name FROM customers WHERE id NOT IN (SELECT customer_id FROM orders) ORDER BY id;

-- name: above_average
-- weight: 5
SELECT id FROM orders WHERE total > (SELECT avg(total) * 1.9 FROM orders) ORDER BY id;

-- name: net_totals
-- weight: 15
SELECT id, net(total) FROM orders WHERE id BETWEEN 100 AND 120 ORDER BY id;

-- name: recent
-- weight: 25
SELECT id FROM orders WHERE at > now() - interval '1 day' ORDER BY at;

-- name: new_order
-- weight: 60
INSERT INTO orders VALUES (1000000, 17, '2026-11-02', 1, 12.50, '{t1}');

-- name: ship
-- weight: 50
UPDATE orders SET status = 2 WHERE id = 4711;

-- name: pick
-- weight: 20
SELECT id FROM orders WHERE status = 1 ORDER BY at LIMIT 10 FOR UPDATE SKIP LOCKED;

-- Calls a function that may do anything: explained, and executed only with --allow-functions.
-- name: visit
-- weight: 2
SELECT visit();

-- Planted: 15 and later refuse a number that runs into a word.
-- name: junk
-- weight: 12
SELECT id, total FROM orders WHERE customer_id = 17and status = 3 ORDER BY id;

-- Planted: the column left pg_stat_bgwriter with 17.
-- name: monitoring
-- weight: 3
SELECT buffers_backend >= 0 FROM pg_stat_bgwriter;

-- Planted: every version returns something else.
-- name: version
-- weight: 1
SELECT current_setting('server_version_num')::int / 10000;
