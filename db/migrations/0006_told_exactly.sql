ALTER TABLE `asks` ADD `said` text;--> statement-breakpoint
CREATE INDEX `quarantine_missing` ON `quarantine` (`session_id`,`agent_id`,`position`) WHERE session_id is not null and ifnull(parked, 'parked') = 'parked';--> statement-breakpoint
CREATE INDEX `quarantine_unnamed` ON `quarantine` (`producer_id`,`position`) WHERE session_id is null;--> statement-breakpoint
UPDATE `sessions` SET `body` = json_set(`body`, '$.quarantinedCount', (SELECT count(*) FROM `quarantine`
	WHERE `session_id` = `sessions`.`id` AND `agent_id` = `sessions`.`agent_id` AND ifnull(`parked`, 'parked') = 'parked'));
