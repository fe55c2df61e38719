DROP INDEX `sessions_by_answer`;--> statement-breakpoint
ALTER TABLE `sessions` ADD `gives_up_at` integer;--> statement-breakpoint
CREATE INDEX `sessions_by_giving_up` ON `sessions` (`gives_up_at`) WHERE gives_up_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `sessions_by_answer` ON `sessions` (`answer_by`) WHERE answer_by IS NOT NULL;--> statement-breakpoint
ALTER TABLE `tasks` ADD `presumed` text;--> statement-breakpoint
CREATE INDEX `tasks_presumed` ON `tasks` (`session_id`,`position`) WHERE presumed IS NOT NULL;