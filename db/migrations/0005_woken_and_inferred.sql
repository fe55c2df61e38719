ALTER TABLE `sessions` ADD `wake_rule` text;--> statement-breakpoint
CREATE INDEX `sessions_with_rule` ON `sessions` (`agent_id`,`last_event_at`) WHERE wake_rule IS NOT NULL;--> statement-breakpoint
ALTER TABLE `turns` ADD `inferred` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `commands_of_waking` ON `commands` (`session_id`,`position`) WHERE type = 'wake-rule.set';