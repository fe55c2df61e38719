CREATE TABLE `inbox` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`agent_id` text NOT NULL,
	`session_id` text,
	`version` integer NOT NULL,
	`since` integer NOT NULL,
	`seen_at` integer,
	`snoozed_until` integer,
	`claim` text,
	`done_at` integer,
	`body` text NOT NULL,
	`words` text NOT NULL,
	`position` integer NOT NULL,
	`opened_position` integer NOT NULL,
	`updated_position` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `inbox_by_change` ON `inbox` (`updated_position`,`done_at`,`position`,`session_id`);--> statement-breakpoint
CREATE INDEX `inbox_open` ON `inbox` (`kind`,`since`,`id`) WHERE done_at IS NULL;--> statement-breakpoint
CREATE INDEX `inbox_by_opening` ON `inbox` (`opened_position`) WHERE done_at IS NULL;--> statement-breakpoint
CREATE INDEX `events_of_requests` ON `events` (`session_id`,`entity_id`,`position`) WHERE name IN ('request:opened', 'request:resolved');--> statement-breakpoint
UPDATE `sessions` SET `state_due_at` = 0 WHERE `state` IN ('needs-input', 'failed', 'unknown', 'exited')
	OR `body` ->> '$.lostCount' > 0 OR `body` ->> '$.quarantinedCount' > 0;--> statement-breakpoint
INSERT INTO `inbox` (`id`, `kind`, `agent_id`, `version`, `since`, `body`, `words`, `position`, `opened_position`, `updated_position`)
	SELECT json_array(`kind`, `id`), `kind`, `id`, `count`, `last_seen_at`,
		json_object('title', NULL, 'count', `count`, 'request', NULL, 'messageId', NULL, 'from', NULL),
		lower(`id`), `updated_position`, `updated_position`, `updated_position`
	FROM (
		SELECT `id`, 'hook-failure' AS `kind`, `body` ->> '$.insightCount' AS `count`, `last_seen_at`, `updated_position` FROM `agents`
		UNION ALL
		SELECT `id`, 'parked', `body` ->> '$.parkedCount', `last_seen_at`, `updated_position` FROM `agents`)
	WHERE `count` > 0;
