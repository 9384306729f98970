-- One row changed by primary key; see workloads/peers/sysbench/update.lua.
\set id random(1, :rows)
UPDATE sbtest1 SET k=k+1 WHERE id=:id;
