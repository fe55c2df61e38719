DROP INDEX `events_missing`;--> statement-breakpoint
CREATE INDEX `events_lost` ON `events` (`session_id`,`position`) WHERE name = 'interlude:lost';--> statement-breakpoint
ALTER TABLE `asks` ADD `said` text;--> statement-breakpoint
CREATE INDEX `quarantine_missing` ON `quarantine` (`session_id`,`agent_id`,`position`,`parked`,`received_at`) WHERE session_id IS NOT NULL AND ifnull(parked, 'parked') = 'parked';--> statement-breakpoint
CREATE INDEX `quarantine_unnamed` ON `quarantine` (`producer_id`,`session_id`,`agent_id`) WHERE session_id IS NULL OR agent_id IS NULL;--> statement-breakpoint
UPDATE `sessions` SET `body` = json_set(`body`, '$.quarantinedCount', (SELECT count(*) FROM `quarantine`
	WHERE `session_id` = `sessions`.`id` AND `agent_id` = `sessions`.`agent_id` AND ifnull(`parked`, 'parked') = 'parked'));--> statement-breakpoint
UPDATE `agents` SET `body` = json_set(`body`, '$.quarantinedCount', (SELECT count(*) FROM `quarantine`
	WHERE `agent_id` = `agents`.`id` AND ifnull(`parked`, 'parked') = 'parked'));--> statement-breakpoint
UPDATE `inbox` SET `version` = 0 WHERE `done_at` IS NOT NULL AND `kind` IN ('hook-failure', 'parked');
