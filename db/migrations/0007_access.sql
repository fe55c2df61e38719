CREATE TABLE `access` (
	`id` integer PRIMARY KEY NOT NULL,
	`version` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `audit` (
	`number` integer PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`actor` text NOT NULL,
	`actor_kind` text NOT NULL,
	`role` text NOT NULL,
	`credential_id` text NOT NULL,
	`action` text NOT NULL,
	`agent_id` text,
	`session_id` text,
	`target` text NOT NULL,
	`digest` text NOT NULL,
	`origin` text NOT NULL,
	`result` text NOT NULL,
	`hash` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `audit_by_action` ON `audit` (`action`,`number`);--> statement-breakpoint
CREATE INDEX `audit_by_credential` ON `audit` (`credential_id`,`number`);--> statement-breakpoint
CREATE INDEX `audit_by_session` ON `audit` (`session_id`,`number`) WHERE session_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `audit_by_agent` ON `audit` (`agent_id`,`number`) WHERE agent_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `credentials` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`hash` text NOT NULL,
	`name` text NOT NULL,
	`role` text NOT NULL,
	`scope` text NOT NULL,
	`parent_origin` text,
	`redacts` integer DEFAULT false NOT NULL,
	`member_id` text,
	`provider_session_id` text,
	`parent_id` text,
	`created_at` integer NOT NULL,
	`last_used_at` integer NOT NULL,
	`expires_at` integer,
	`idle_ms` integer,
	`revoked_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `credentials_by_hash` ON `credentials` (`hash`);--> statement-breakpoint
CREATE INDEX `credentials_by_creation` ON `credentials` (`kind`,`created_at`);--> statement-breakpoint
CREATE INDEX `credentials_by_parent` ON `credentials` (`parent_id`) WHERE parent_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `credentials_by_member` ON `credentials` (`member_id`) WHERE member_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `credentials_by_expiry` ON `credentials` (`expires_at`) WHERE expires_at IS NOT NULL;--> statement-breakpoint
CREATE TABLE `members` (
	`id` text PRIMARY KEY NOT NULL,
	`issuer` text NOT NULL,
	`subject` text NOT NULL,
	`name` text NOT NULL,
	`email` text,
	`role` text NOT NULL,
	`given_role` text,
	`created_at` integer NOT NULL,
	`last_sign_in_at` integer NOT NULL,
	`blocked_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `members_by_subject` ON `members` (`issuer`,`subject`);--> statement-breakpoint
CREATE TABLE `runner_generations` (
	`agent_id` text NOT NULL,
	`runner_id` text NOT NULL,
	`generation` integer NOT NULL,
	PRIMARY KEY(`agent_id`, `runner_id`)
);
--> statement-breakpoint
INSERT INTO `access` (`id`, `version`) VALUES (1, 0);--> statement-breakpoint
INSERT INTO `runner_generations` (`agent_id`, `runner_id`, `generation`) SELECT `agent_id`, `runner_id`, 1 FROM `runners` WHERE `started_at` > 0;--> statement-breakpoint
CREATE TRIGGER `audit_is_kept` BEFORE UPDATE ON `audit` BEGIN SELECT RAISE(ABORT, 'an audit entry is never changed'); END;
