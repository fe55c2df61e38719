CREATE TABLE `log_chunks` (
	`id` integer PRIMARY KEY NOT NULL,
	`first_position` integer NOT NULL,
	`last_position` integer NOT NULL,
	`from_at` integer NOT NULL,
	`to_at` integer NOT NULL,
	`levels` integer NOT NULL,
	`components` text NOT NULL,
	`has_markers` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `log_components` (
	`agent_id` text NOT NULL,
	`component` text NOT NULL,
	`lines` integer NOT NULL,
	PRIMARY KEY(`agent_id`, `component`)
);
--> statement-breakpoint
ALTER TABLE `agent_logs` ADD `removed_lines` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `agent_logs` ADD `removed_bytes` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `agent_logs` ADD `number` integer;--> statement-breakpoint
ALTER TABLE `agent_logs` ADD `indexed_line` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `agent_logs` ADD `indexed_position` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `agent_logs_by_number` ON `agent_logs` (`number`);--> statement-breakpoint
CREATE VIRTUAL TABLE `log_search` USING fts5(`text`, tokenize = 'trigram case_sensitive 1', content = '', contentless_delete = 1, detail = none);--> statement-breakpoint
INSERT INTO `log_search` (`log_search`, `rank`) VALUES ('automerge', 0);--> statement-breakpoint
UPDATE `log_lines` SET `marker` = NULL WHERE `marker` = 'null';--> statement-breakpoint
UPDATE `agent_logs` SET `bytes` = (
	SELECT ifnull(sum(octet_length(`message`)), 0) FROM `log_lines` WHERE `log_lines`.`agent_id` = `agent_logs`.`agent_id`
);--> statement-breakpoint
INSERT INTO `log_components` (`agent_id`, `component`, `lines`)
	SELECT `agent_id`, `component`, count(*) FROM `log_lines` GROUP BY `agent_id`, `component`;
