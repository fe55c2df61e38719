CREATE TABLE `agents` (
	`id` text PRIMARY KEY NOT NULL,
	`body` text NOT NULL,
	`last_seen_at` integer NOT NULL,
	`updated_position` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `agents_by_update` ON `agents` (`updated_position`);--> statement-breakpoint
CREATE TABLE `counter` (
	`id` integer PRIMARY KEY NOT NULL,
	`position` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `events` (
	`position` integer PRIMARY KEY NOT NULL,
	`session_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`producer_id` text NOT NULL,
	`epoch` integer NOT NULL,
	`seq` integer NOT NULL,
	`occurred_at` integer NOT NULL,
	`received_at` integer NOT NULL,
	`type` text NOT NULL,
	`entity_id` text,
	`turn_id` text,
	`payload` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `events_by_session` ON `events` (`session_id`,`position`);--> statement-breakpoint
CREATE INDEX `events_by_turn` ON `events` (`session_id`,`turn_id`,`position`);--> statement-breakpoint
CREATE TABLE `log_lines` (
	`position` integer PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`occurred_at` integer NOT NULL,
	`received_at` integer NOT NULL,
	`level` text NOT NULL,
	`component` text NOT NULL,
	`message` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `log_lines_by_agent` ON `log_lines` (`agent_id`,`position`);--> statement-breakpoint
CREATE TABLE `producer_sessions` (
	`producer_id` text NOT NULL,
	`session_id` text NOT NULL,
	PRIMARY KEY(`producer_id`, `session_id`)
);
--> statement-breakpoint
CREATE TABLE `producers` (
	`id` text PRIMARY KEY NOT NULL,
	`epoch` integer NOT NULL,
	`last_seq` integer NOT NULL,
	`agent_id` text,
	`accepted` integer DEFAULT 0 NOT NULL,
	`duplicates` integer DEFAULT 0 NOT NULL,
	`gaps` integer DEFAULT 0 NOT NULL,
	`rejected` integer DEFAULT 0 NOT NULL,
	`lost` integer DEFAULT 0 NOT NULL,
	`clock_skew_ms` integer,
	`last_seen_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `quarantine` (
	`position` integer PRIMARY KEY NOT NULL,
	`producer_id` text NOT NULL,
	`epoch` integer NOT NULL,
	`seq` integer NOT NULL,
	`agent_id` text,
	`session_id` text,
	`code` text NOT NULL,
	`message` text NOT NULL,
	`record` text NOT NULL,
	`received_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `quarantine_by_agent` ON `quarantine` (`agent_id`,`position`);--> statement-breakpoint
CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`state` text NOT NULL,
	`last_event_at` integer NOT NULL,
	`body` text NOT NULL,
	`places` text NOT NULL,
	`updated_position` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `sessions_by_update` ON `sessions` (`updated_position`);--> statement-breakpoint
CREATE INDEX `sessions_by_agent` ON `sessions` (`agent_id`);--> statement-breakpoint
CREATE INDEX `sessions_by_last_event` ON `sessions` (`last_event_at`);--> statement-breakpoint
CREATE TABLE `tasks` (
	`session_id` text NOT NULL,
	`position` integer NOT NULL,
	`id` text NOT NULL,
	`run_id` text,
	`agent_id` text NOT NULL,
	`status` text NOT NULL,
	`body` text NOT NULL,
	`updated_position` integer NOT NULL,
	PRIMARY KEY(`session_id`, `position`)
);
--> statement-breakpoint
CREATE INDEX `tasks_by_id` ON `tasks` (`session_id`,`id`);--> statement-breakpoint
CREATE INDEX `tasks_by_update` ON `tasks` (`updated_position`);--> statement-breakpoint
CREATE TABLE `turns` (
	`session_id` text NOT NULL,
	`id` text NOT NULL,
	`position` integer NOT NULL,
	`kind` text NOT NULL,
	`state` text NOT NULL,
	`trigger` text,
	`user_message_ids` text DEFAULT '[]' NOT NULL,
	`parent_turn_id` text,
	`started_at` integer NOT NULL,
	`ended_at` integer,
	`error_message` text,
	`error_code` text,
	PRIMARY KEY(`session_id`, `id`)
);
--> statement-breakpoint
CREATE INDEX `turns_by_position` ON `turns` (`session_id`,`position`);