-- CPU of a server between its slices: work that its operations left behind.
alter table slice add column background_cpu_ns integer;
