CREATE TABLE `asks` (
	`session_id` text NOT NULL,
	`client_id` text NOT NULL,
	`digest` text,
	`command_id` text,
	PRIMARY KEY(`session_id`, `client_id`)
);
--> statement-breakpoint
INSERT INTO `asks` (`session_id`, `client_id`, `command_id`) SELECT `session_id`, `client_id`, `id` FROM `commands` WHERE `session_id` IS NOT NULL AND `client_id` IS NOT NULL;
--> statement-breakpoint
DROP INDEX `commands_by_client`;--> statement-breakpoint
ALTER TABLE `commands` DROP COLUMN `client_id`;
