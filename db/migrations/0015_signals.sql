ALTER TABLE `insights` RENAME COLUMN `kind` TO `signal`;--> statement-breakpoint
ALTER TABLE `insights` RENAME COLUMN `subject` TO `source`;--> statement-breakpoint
ALTER TABLE `insights` ADD `value` text;--> statement-breakpoint
ALTER TABLE `insights` ADD `outcome` text;--> statement-breakpoint
ALTER TABLE `insights` ADD `is_failure` integer DEFAULT 1 NOT NULL;--> statement-breakpoint
DROP INDEX `insights_by_agent`;--> statement-breakpoint
CREATE INDEX `insights_by_agent` ON `insights` (`agent_id`,`is_failure`,`position`);