-- Instructions counted, window by window, and where they went by call path (deflated JSON).
create table instruction_count (
    id           integer primary key,
    run          integer not null references run (id),
    server       integer not null,
    cell         integer not null,
    start        integer not null,
    window       integer not null,
    operations   integer not null,
    instructions integer not null,
    of_marks     integer not null,
    of_clock     integer not null,
    rows         integer not null,
    failed       integer not null,
    beside       real
) strict;
create index instruction_count_run on instruction_count (run, cell, server);

create table instruction_profile (
    id      integer primary key,
    run     integer not null references run (id),
    server  integer not null,
    cell    integer not null,
    profile blob not null
) strict;
create index instruction_profile_run on instruction_profile (run, cell, server);

create trigger instruction_count_no_update before update on instruction_count begin
    select raise(abort, 'counts are never changed');
end;
create trigger instruction_count_no_delete before delete on instruction_count begin
    select raise(abort, 'counts are never deleted');
end;
create trigger instruction_profile_no_update before update on instruction_profile begin
    select raise(abort, 'profiles are never changed');
end;
create trigger instruction_profile_no_delete before delete on instruction_profile begin
    select raise(abort, 'profiles are never deleted');
end;
