DROP INDEX `obligations_by_update`;--> statement-breakpoint
CREATE INDEX `obligations_by_change` ON `obligations` (`updated_position`,`state`,`position`,`session_id`);--> statement-breakpoint
DROP INDEX `tasks_by_update`;--> statement-breakpoint
CREATE INDEX `tasks_by_change` ON `tasks` (`updated_position`,`status`,`position`,`session_id`);--> statement-breakpoint
ALTER TABLE `runners` ADD `lost_position` integer;--> statement-breakpoint
ALTER TABLE `runners` ADD `came_position` integer;