ALTER TABLE `tasks` ADD `presumed` text;--> statement-breakpoint
CREATE INDEX `tasks_presumed` ON `tasks` (`session_id`,`position`) WHERE presumed IS NOT NULL;