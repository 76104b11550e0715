-- An event, each minute; the server's event_scheduler must be ON. A run longer than a minute keeps the next one out.
drop event if exists `Shop_Web_OutboxData_cleanup`;
delimiter //
create event `Shop_Web_OutboxData_cleanup` on schedule every 1 minute do
begin
    if get_lock(concat('outbox ', sha1(concat(database(), '.', 'Shop_Web_OutboxData'))), 0) then
        repeat
            delete outbox
            from (
                select MessageId from `Shop_Web_OutboxData`
                where DispatchedAt < utc_timestamp() - interval 7 day and Dispatched + 0 = 1
                order by DispatchedAt limit 4000 for update skip locked
            ) as due
            straight_join `Shop_Web_OutboxData` as outbox on outbox.MessageId = due.MessageId;
        until row_count() = 0 end repeat;
        do release_lock(concat('outbox ', sha1(concat(database(), '.', 'Shop_Web_OutboxData'))));
    end if;
end //
delimiter ;
