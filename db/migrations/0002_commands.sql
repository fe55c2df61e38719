CREATE TABLE `commands` (
	`id` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL,
	`agent_id` text NOT NULL,
	`session_id` text,
	`type` text NOT NULL,
	`body` text NOT NULL,
	`client_id` text,
	`state` text NOT NULL,
	`reason` text,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`lease_until` integer,
	`claimed_by` text,
	`delivery_count` integer DEFAULT 0 NOT NULL,
	`result` text,
	`updated_position` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `commands_by_client` ON `commands` (`session_id`,`client_id`);--> statement-breakpoint
CREATE INDEX `commands_open_by_agent` ON `commands` (`agent_id`,`position`) WHERE state in ('queued', 'delivered');--> statement-breakpoint
CREATE INDEX `commands_open_by_expiry` ON `commands` (`expires_at`) WHERE state in ('queued', 'delivered');--> statement-breakpoint
CREATE TABLE `obligations` (
	`session_id` text NOT NULL,
	`message_id` text NOT NULL,
	`position` integer NOT NULL,
	`agent_id` text NOT NULL,
	`state` text NOT NULL,
	`body` text NOT NULL,
	`updated_position` integer NOT NULL,
	PRIMARY KEY(`session_id`, `message_id`)
);
--> statement-breakpoint
CREATE INDEX `obligations_owed_by_agent` ON `obligations` (`agent_id`,`position`) WHERE state = 'owed';--> statement-breakpoint
CREATE INDEX `obligations_owed_by_session` ON `obligations` (`session_id`,`position`) WHERE state = 'owed';--> statement-breakpoint
CREATE INDEX `obligations_by_update` ON `obligations` (`updated_position`);--> statement-breakpoint
CREATE TABLE `runners` (
	`agent_id` text PRIMARY KEY NOT NULL,
	`runner_id` text NOT NULL,
	`started_at` integer NOT NULL,
	`stream_id` text NOT NULL,
	`alive_until` integer
);
--> statement-breakpoint
CREATE INDEX `tasks_by_agent` ON `tasks` (`agent_id`,`id`);