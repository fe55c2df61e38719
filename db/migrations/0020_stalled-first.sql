UPDATE `sessions` SET `listed_as` = 'stalled' WHERE `state` = 'working' AND `body` ->> '$.evidence.note' = 'no-progress';
