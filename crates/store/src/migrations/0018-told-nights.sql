-- Nights record of which runs they have said what these found: facts of the kind `night`. A run that had
-- reached its state before they did has no such fact, although a night has said it.
create table told_since (
    id        integer primary key,
    run_state integer not null
) strict;

insert into told_since (run_state) select coalesce(
    (
        select min(s.id) - 1 from fact f
        join run_state s on s.run = f.run and s.state = 'finished'
        where f.kind = 'night'
    ),
    (select max(id) from run_state),
    0
);

create trigger told_since_no_update before update on told_since begin
    select raise(abort, 'records are never changed');
end;
create trigger told_since_no_delete before delete on told_since begin
    select raise(abort, 'records are never deleted');
end;
