CREATE INDEX `events_of_output` ON `events` (`session_id`,`entity_id`,`position`) WHERE name = 'task:output';--> statement-breakpoint
UPDATE `tasks` SET `body` = json_set(`body`, '$.hasOutput', json('false'));
