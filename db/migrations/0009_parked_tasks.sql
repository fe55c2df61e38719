ALTER TABLE `quarantine` ADD `parked` text;--> statement-breakpoint
ALTER TABLE `quarantine` ADD `task_id` text;--> statement-breakpoint
ALTER TABLE `quarantine` ADD `task_run_id` text;--> statement-breakpoint
ALTER TABLE `quarantine` ADD `settled_at` integer;--> statement-breakpoint
ALTER TABLE `quarantine` ADD `settled_by` text;--> statement-breakpoint
ALTER TABLE `quarantine` ADD `settled_reason` text;--> statement-breakpoint
ALTER TABLE `quarantine` ADD `settled_session_id` text;--> statement-breakpoint
ALTER TABLE `quarantine` ADD `settled_client_id` text;--> statement-breakpoint
CREATE INDEX `quarantine_parked` ON `quarantine` (`agent_id`,`parked`,`position`) WHERE parked is not null;