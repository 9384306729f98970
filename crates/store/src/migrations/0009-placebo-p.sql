-- How far a placebo was from its base in terms of its error: whether an interval of any level holds 0.
alter table placebo_result add column throughput_p real;
alter table placebo_result add column cpu_p real;
