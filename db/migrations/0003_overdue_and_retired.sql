CREATE TABLE `activity` (
	`minute` integer NOT NULL,
	`agent_id` text NOT NULL,
	`events` integer NOT NULL,
	PRIMARY KEY(`minute`, `agent_id`)
);
--> statement-breakpoint
CREATE TABLE `webhook_cursor` (
	`id` integer PRIMARY KEY NOT NULL,
	`position` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `webhook_deliveries` (
	`position` integer PRIMARY KEY NOT NULL,
	`item_id` text NOT NULL,
	`kind` text NOT NULL,
	`state` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`due_at` integer NOT NULL,
	`lease_until` integer,
	`attempted_at` integer,
	`status` integer,
	`error` text
);
--> statement-breakpoint
CREATE INDEX `webhook_deliveries_due` ON `webhook_deliveries` (`due_at`) WHERE state = 'waiting';--> statement-breakpoint
ALTER TABLE `obligations` ADD `owed_since` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `obligations` ADD `is_overdue` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `obligations_awaited` ON `obligations` (`owed_since`) WHERE state = 'owed' AND is_overdue = 0;--> statement-breakpoint
CREATE INDEX `obligations_answered` ON `obligations` (`updated_position`) WHERE state = 'answered';--> statement-breakpoint
CREATE INDEX `obligations_settled` ON `obligations` (`session_id`,`updated_position`) WHERE state <> 'owed';--> statement-breakpoint
CREATE INDEX `tasks_by_end` ON `tasks` (`ended_at`,`started_at`) WHERE ended_at IS NOT NULL;--> statement-breakpoint
UPDATE `obligations` SET `owed_since` = `body` ->> '$.sentAt', `body` = json_set(`body`, '$.candidate', NULL,
	'$.clearedBy', CASE `state` WHEN 'answered' THEN 'turn' WHEN 'waived' THEN 'waived' END);--> statement-breakpoint
UPDATE `sessions` SET `body` = json_set(`body`, '$.overdueCount', 0);--> statement-breakpoint
UPDATE `agents` SET `body` = json_set(`body`, '$.overdueCount', 0, '$.retiredAt', NULL, '$.runningTaskCount',
	(SELECT ifnull(sum(`sessions`.`body` ->> '$.runningTaskCount'), 0) FROM `sessions` WHERE `agent_id` = `agents`.`id`));
