DROP INDEX `sessions_by_agent`;--> statement-breakpoint
CREATE INDEX `sessions_by_agent` ON `sessions` (`agent_id`,`last_event_at`,`id`);--> statement-breakpoint
CREATE INDEX `agents_by_last_seen` ON `agents` (`last_seen_at`,`id`);