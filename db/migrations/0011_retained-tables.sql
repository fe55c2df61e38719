CREATE TABLE `audit_start` (
	`id` integer PRIMARY KEY NOT NULL,
	`number` integer NOT NULL,
	`hash` text NOT NULL,
	`removed_at` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `asks` ADD `asked_position` integer;--> statement-breakpoint
CREATE INDEX `asks_by_command` ON `asks` (`command_id`,`asked_position`);--> statement-breakpoint
ALTER TABLE `attachments` ADD `named_position` integer;--> statement-breakpoint
CREATE INDEX `commands_ended` ON `commands` (`position`) WHERE state not in ('queued', 'delivered');--> statement-breakpoint
CREATE INDEX `quarantine_settled` ON `quarantine` (`position`,`parked`,`settled_at`) WHERE ifnull(parked, '') <> 'parked';--> statement-breakpoint
UPDATE `asks` SET `asked_position` = (SELECT `position` FROM `counter`) WHERE `command_id` IS NULL;--> statement-breakpoint
UPDATE `attachments` SET `named_position` = (SELECT `position` FROM `counter`) WHERE `is_named` = 1;
