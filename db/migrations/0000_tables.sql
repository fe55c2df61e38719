CREATE TABLE `agent_logs` (
	`agent_id` text PRIMARY KEY NOT NULL,
	`last_line` integer DEFAULT 0 NOT NULL,
	`bytes` integer DEFAULT 0 NOT NULL,
	`removed_lines` integer DEFAULT 0 NOT NULL,
	`removed_bytes` integer DEFAULT 0 NOT NULL,
	`number` integer,
	`indexed_line` integer DEFAULT 0 NOT NULL,
	`indexed_position` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `agent_logs_by_number` ON `agent_logs` (`number`);--> statement-breakpoint
CREATE TABLE `agents` (
	`id` text PRIMARY KEY NOT NULL,
	`reported_by` text,
	`reports_every_ms` integer,
	`level_requested_at` integer,
	`level_expires_at` integer,
	`body` text NOT NULL,
	`last_seen_at` integer NOT NULL,
	`updated_position` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `agents_by_update` ON `agents` (`updated_position`);--> statement-breakpoint
CREATE INDEX `agents_by_last_seen` ON `agents` (`last_seen_at`,`id`);--> statement-breakpoint
CREATE INDEX `agents_by_level` ON `agents` (`level_expires_at`) WHERE level_requested_at IS NOT NULL;--> statement-breakpoint
CREATE TABLE `asks` (
	`session_id` text NOT NULL,
	`client_id` text NOT NULL,
	`digest` text NOT NULL,
	`command_id` text,
	PRIMARY KEY(`session_id`, `client_id`)
);
--> statement-breakpoint
CREATE TABLE `commands` (
	`id` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL,
	`agent_id` text NOT NULL,
	`session_id` text,
	`type` text NOT NULL,
	`body` text NOT NULL,
	`state` text NOT NULL,
	`reason` text,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`lease_until` integer,
	`claimed_by` text,
	`delivery_count` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `commands_open_by_agent` ON `commands` (`agent_id`,`position`) WHERE state in ('queued', 'delivered');--> statement-breakpoint
CREATE INDEX `commands_of_level` ON `commands` (`agent_id`,`position`) WHERE type = 'log-level.set';--> statement-breakpoint
CREATE INDEX `commands_open_by_expiry` ON `commands` (`expires_at`) WHERE state in ('queued', 'delivered');--> statement-breakpoint
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
	`name` text,
	`payload` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `events_by_session` ON `events` (`session_id`,`position`);--> statement-breakpoint
CREATE INDEX `events_by_turn` ON `events` (`session_id`,`turn_id`,`position`);--> statement-breakpoint
CREATE INDEX `events_by_entity` ON `events` (`session_id`,`entity_id`,`position`) WHERE entity_id IS NOT NULL AND type <> 'CUSTOM';--> statement-breakpoint
CREATE TABLE `insights` (
	`position` integer PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`session_id` text,
	`signal` text NOT NULL,
	`source` text NOT NULL,
	`detail` text NOT NULL,
	`occurred_at` integer NOT NULL,
	`seen_at` integer,
	`value` text,
	`outcome` text,
	`is_failure` integer DEFAULT true NOT NULL
);
--> statement-breakpoint
CREATE INDEX `insights_by_agent` ON `insights` (`agent_id`,`is_failure`,`position`);--> statement-breakpoint
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
CREATE TABLE `log_lines` (
	`position` integer PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`occurred_at` integer NOT NULL,
	`received_at` integer NOT NULL,
	`level` text NOT NULL,
	`component` text NOT NULL,
	`message` text NOT NULL,
	`line` integer DEFAULT 0 NOT NULL,
	`redacted` integer DEFAULT 0 NOT NULL,
	`marker` text
);
--> statement-breakpoint
CREATE INDEX `log_lines_by_agent` ON `log_lines` (`agent_id`,`position`);--> statement-breakpoint
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
CREATE INDEX `obligations_by_change` ON `obligations` (`updated_position`,`state`,`position`,`session_id`);--> statement-breakpoint
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
	`received_at` integer NOT NULL,
	`parked` text,
	`task_id` text,
	`task_run_id` text,
	`settled_at` integer,
	`settled_by` text,
	`settled_reason` text,
	`settled_session_id` text,
	`settled_client_id` text
);
--> statement-breakpoint
CREATE INDEX `quarantine_by_agent` ON `quarantine` (`agent_id`,`position`);--> statement-breakpoint
CREATE INDEX `quarantine_parked` ON `quarantine` (`agent_id`,`parked`,`position`) WHERE parked is not null;--> statement-breakpoint
CREATE TABLE `runners` (
	`agent_id` text PRIMARY KEY NOT NULL,
	`runner_id` text NOT NULL,
	`started_at` integer NOT NULL,
	`stream_id` text NOT NULL,
	`alive_until` integer,
	`missed_at` integer,
	`absence_due_at` integer,
	`first_connected_at` integer NOT NULL,
	`missed_position` integer,
	`first_connected_position` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`state` text NOT NULL,
	`last_event_at` integer NOT NULL,
	`answer_by` integer,
	`insight_count` integer DEFAULT 0 NOT NULL,
	`other_failure_count` integer DEFAULT 0 NOT NULL,
	`is_under_way` integer DEFAULT false NOT NULL,
	`is_away` integer DEFAULT false NOT NULL,
	`away_position` integer,
	`seen_at` integer,
	`seen_position` integer DEFAULT 0 NOT NULL,
	`body` text NOT NULL,
	`places` text NOT NULL,
	`memory` text DEFAULT '{}' NOT NULL,
	`updated_position` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `sessions_by_update` ON `sessions` (`updated_position`);--> statement-breakpoint
CREATE INDEX `sessions_by_agent` ON `sessions` (`agent_id`,`last_event_at`,`id`);--> statement-breakpoint
CREATE INDEX `sessions_by_state` ON `sessions` (`state`,`last_event_at`,`id`);--> statement-breakpoint
CREATE INDEX `sessions_by_answer` ON `sessions` (`answer_by`) WHERE state = 'waiting' AND answer_by IS NOT NULL;--> statement-breakpoint
CREATE INDEX `sessions_under_way` ON `sessions` (`agent_id`) WHERE is_under_way;--> statement-breakpoint
CREATE INDEX `sessions_with_insights` ON `sessions` (`agent_id`) WHERE insight_count > 0;--> statement-breakpoint
CREATE TABLE `tasks` (
	`session_id` text NOT NULL,
	`position` integer NOT NULL,
	`id` text NOT NULL,
	`run_id` text,
	`agent_id` text NOT NULL,
	`status` text NOT NULL,
	`started_at` integer DEFAULT 0 NOT NULL,
	`ended_at` integer,
	`body` text NOT NULL,
	`updated_position` integer NOT NULL,
	PRIMARY KEY(`session_id`, `position`)
);
--> statement-breakpoint
CREATE INDEX `producers_by_agent` ON `producers` (`agent_id`);--> statement-breakpoint
CREATE INDEX `tasks_by_id` ON `tasks` (`session_id`,`id`,`position`);--> statement-breakpoint
CREATE INDEX `tasks_by_agent` ON `tasks` (`agent_id`,`id`,`session_id`);--> statement-breakpoint
CREATE INDEX `tasks_by_run` ON `tasks` (`agent_id`,`id`,`run_id`,`session_id`,`position`);--> statement-breakpoint
CREATE INDEX `tasks_by_change` ON `tasks` (`updated_position`,`status`,`position`,`session_id`);--> statement-breakpoint
CREATE INDEX `tasks_running` ON `tasks` (`session_id`,`position`) WHERE status = 'running';--> statement-breakpoint
CREATE INDEX `tasks_by_start` ON `tasks` (`session_id`,`started_at`,`ended_at`,`id`);--> statement-breakpoint
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
CREATE INDEX `turns_by_position` ON `turns` (`session_id`,`position`);--> statement-breakpoint
CREATE INDEX `turns_by_start` ON `turns` (`session_id`,`started_at`,`position`) WHERE kind <> 'none';--> statement-breakpoint
CREATE VIRTUAL TABLE `log_search` USING fts5(`text`, tokenize = 'trigram case_sensitive 1', content = '', contentless_delete = 1, detail = none);--> statement-breakpoint
INSERT INTO `log_search` (`log_search`, `rank`) VALUES ('automerge', 0);
