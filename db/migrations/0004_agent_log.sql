CREATE TABLE `agent_logs` (
	`agent_id` text PRIMARY KEY NOT NULL,
	`last_line` integer DEFAULT 0 NOT NULL,
	`bytes` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `insights` (
	`position` integer PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`session_id` text,
	`kind` text NOT NULL,
	`subject` text NOT NULL,
	`detail` text NOT NULL,
	`occurred_at` integer NOT NULL,
	`seen_at` integer
);
--> statement-breakpoint
CREATE INDEX `insights_by_agent` ON `insights` (`agent_id`,`position`);--> statement-breakpoint
CREATE TABLE `log_levels` (
	`agent_id` text PRIMARY KEY NOT NULL,
	`level` text NOT NULL,
	`requested_by` text NOT NULL,
	`requested_at` integer NOT NULL,
	`expires_at` integer,
	`state` text NOT NULL,
	`reason` text,
	`command_id` text
);
--> statement-breakpoint
ALTER TABLE `log_lines` ADD `line` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `log_lines` ADD `redacted` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `log_lines` ADD `marker` text;--> statement-breakpoint
UPDATE `log_lines` SET `line` = numbered.`n` FROM (
	SELECT `position` AS `p`, row_number() OVER (PARTITION BY `agent_id` ORDER BY `position`) AS `n` FROM `log_lines`
) AS numbered WHERE `log_lines`.`position` = numbered.`p`;--> statement-breakpoint
INSERT INTO `agent_logs` (`agent_id`, `last_line`, `bytes`)
	SELECT `agent_id`, count(*), sum(octet_length(`message`)) FROM `log_lines` GROUP BY `agent_id`;
