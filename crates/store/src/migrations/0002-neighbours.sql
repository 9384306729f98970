-- What else went on during a slice: other servers of the run, switches, pressure, and the client's own lag.
alter table slice add column idle_cpu_ns integer;
alter table slice add column switches integer;
alter table slice add column cpu_pressure_ns integer;
alter table slice add column schedule_lag_ns integer;
