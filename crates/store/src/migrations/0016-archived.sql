-- Finished runs whose bulk lies in a sealed file beside this one. A row of the bulk may leave only after a row
-- here has named the file that holds it; everything else is still never deleted.
create table archived (
    id          integer primary key,
    run         integer not null references run (id),
    state       text not null,
    sha256      text not null,
    bytes       integer not null,
    row_count   integer not null,
    blocks_done integer not null,
    visits_done integer not null,
    at_unix_ms  integer not null,
    written_by  text not null
) strict;
create index archived_run on archived (run);

create trigger archived_no_update before update on archived begin
    select raise(abort, 'records are never changed');
end;
create trigger archived_no_delete before delete on archived begin
    select raise(abort, 'records are never deleted');
end;
create trigger archived_finished before insert on archived
when new.state = 'archived' and
    (select state from run_state where run = new.run order by id desc limit 1) is not 'finished' begin
    select raise(abort, 'only finished runs are archived');
end;
create trigger visit_not_archived before insert on visit
when (select state from archived where run = new.run order by id desc limit 1) is 'archived' begin
    select raise(abort, 'the run is archived');
end;
create trigger record_not_archived before insert on record
when (select state from archived where run = new.run order by id desc limit 1) is 'archived' begin
    select raise(abort, 'the run is archived');
end;

drop trigger slice_no_delete;
create trigger slice_no_delete before delete on slice
when (select state from archived where run = old.run order by id desc limit 1) is not 'archived' begin
    select raise(abort, 'records are never deleted');
end;
drop trigger slice_error_no_delete;
create trigger slice_error_no_delete before delete on slice_error
when (select a.state from archived a join slice s on s.run = a.run where s.id = old.slice
    order by a.id desc limit 1) is not 'archived' begin
    select raise(abort, 'records are never deleted');
end;
drop trigger sample_no_delete;
create trigger sample_no_delete before delete on sample
when (select state from archived where run = old.run order by id desc limit 1) is not 'archived' begin
    select raise(abort, 'records are never deleted');
end;
drop trigger visit_counters_no_delete;
create trigger visit_counters_no_delete before delete on visit_counters
when (select state from archived where run = old.run order by id desc limit 1) is not 'archived' begin
    select raise(abort, 'records are never deleted');
end;
drop trigger mark_no_delete;
create trigger mark_no_delete before delete on mark
when (select state from archived where run = old.run order by id desc limit 1) is not 'archived' begin
    select raise(abort, 'records are never deleted');
end;
drop trigger record_no_delete;
create trigger record_no_delete before delete on record
when (select state from archived where run = old.run order by id desc limit 1) is not 'archived' begin
    select raise(abort, 'records are never deleted');
end;
drop trigger instruction_profile_no_delete;
create trigger instruction_profile_no_delete before delete on instruction_profile
when (select state from archived where run = old.run order by id desc limit 1) is not 'archived' begin
    select raise(abort, 'profiles are never deleted');
end;
drop trigger fact_no_delete;
create trigger fact_no_delete before delete on fact
when old.kind not in ('settings', 'warm_up') or
    (select state from archived where run = old.run order by id desc limit 1) is not 'archived' begin
    select raise(abort, 'records are never deleted');
end;
