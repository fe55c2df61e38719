CREATE TABLE `session_aliases` (
	`session_id` text PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`alias` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `session_aliases_by_alias` ON `session_aliases` (`alias`,`agent_id`);