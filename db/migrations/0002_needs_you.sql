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
CREATE INDEX `events_of_requests` ON `events` (`session_id`,`entity_id`,`position`) WHERE name IN ('request:opened', 'request:resolved');