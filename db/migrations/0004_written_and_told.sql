DROP INDEX `events_missing`;--> statement-breakpoint
CREATE INDEX `events_lost` ON `events` (`session_id`,`position`) WHERE name = 'interlude:lost';--> statement-breakpoint
CREATE INDEX `events_of_output` ON `events` (`session_id`,`entity_id`,`position`) WHERE name = 'task:output';--> statement-breakpoint
DROP INDEX `tasks_by_end`;--> statement-breakpoint
ALTER TABLE `tasks` ADD `presumed` text;--> statement-breakpoint
CREATE INDEX `tasks_presumed` ON `tasks` (`session_id`,`position`) WHERE presumed IS NOT NULL;--> statement-breakpoint
DROP INDEX `sessions_by_answer`;--> statement-breakpoint
ALTER TABLE `sessions` ADD `gives_up_at` integer;--> statement-breakpoint
CREATE INDEX `sessions_by_giving_up` ON `sessions` (`gives_up_at`) WHERE gives_up_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `sessions_by_answer` ON `sessions` (`answer_by`) WHERE answer_by IS NOT NULL;--> statement-breakpoint
ALTER TABLE `asks` ADD `said` text;--> statement-breakpoint
ALTER TABLE `runners` ADD `is_over` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `quarantine_missing` ON `quarantine` (`session_id`,`agent_id`,`position`,`parked`,`received_at`) WHERE session_id IS NOT NULL AND ifnull(parked, 'parked') = 'parked';--> statement-breakpoint
CREATE INDEX `quarantine_unnamed` ON `quarantine` (`producer_id`,`session_id`,`agent_id`) WHERE session_id IS NULL OR agent_id IS NULL;--> statement-breakpoint
UPDATE `tasks` SET `body` = json_set(`body`, '$.hasOutput', json('false'));--> statement-breakpoint
UPDATE `sessions` SET `memory` = json_set(`memory`,
  '$.fold.observed.reportAfter', iif(`memory`->>'$.fold.observed.reportIsAfter' = 1, 1, 0),
  '$.fold.observed.messages', json_object(
    'count', 1,
    'claimed', json_object('message', 1, 'turn', `memory`->'$.fold.observed.messageTurn'),
    'unclaimed', json_array(),
    'ids', json_array(`memory`->>'$.fold.observed.messageId')))
WHERE `memory`->>'$.fold.observed.messageId' IS NOT NULL;--> statement-breakpoint
UPDATE `sessions` SET `body` = json_set(`body`, '$.quarantinedCount', (SELECT count(*) FROM `quarantine`
	WHERE `session_id` = `sessions`.`id` AND `agent_id` = `sessions`.`agent_id` AND ifnull(`parked`, 'parked') = 'parked'));--> statement-breakpoint
UPDATE `agents` SET `body` = json_set(`body`, '$.quarantinedCount', (SELECT count(*) FROM `quarantine`
	WHERE `agent_id` = `agents`.`id` AND ifnull(`parked`, 'parked') = 'parked'));--> statement-breakpoint
UPDATE `inbox` SET `version` = 0 WHERE `done_at` IS NOT NULL AND `kind` IN ('hook-failure', 'parked');--> statement-breakpoint
UPDATE `agents` SET `body` = json_set(`body`, '$.brokenOffCount', (
	SELECT count(*) FROM `sessions` WHERE `agent_id` = `agents`.`id` AND `state` = 'exited' AND (
		`sessions`.`body` ->> '$.observations.process.value.signal' IS NOT NULL
		OR ifnull(`sessions`.`body` ->> '$.observations.process.value.code', 0) <> 0)));
