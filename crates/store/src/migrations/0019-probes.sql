-- Probes of the core between operations of a slice: what one took, and all.
alter table slice add column probe_ns integer;
alter table slice add column probing_ns integer;
