DROP INDEX `obligations_awaited`;--> statement-breakpoint
ALTER TABLE `obligations` ADD `is_judged` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `obligations_unjudged` ON `obligations` (`owed_since`) WHERE state = 'owed' AND is_judged = 0;--> statement-breakpoint
ALTER TABLE `tasks` ADD `unanswered_since` integer;--> statement-breakpoint
CREATE INDEX `tasks_unanswered` ON `tasks` (`unanswered_since`) WHERE unanswered_since IS NOT NULL;--> statement-breakpoint
CREATE INDEX `inbox_delivered` ON `inbox` (`updated_position`) WHERE done_at IS NOT NULL AND kind = 'undelivered';