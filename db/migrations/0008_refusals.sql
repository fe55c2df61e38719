CREATE TABLE `refusals` (
	`credential_id` text NOT NULL,
	`action` text NOT NULL,
	`result` text NOT NULL,
	`due_at` integer NOT NULL,
	`times` integer NOT NULL,
	`entry` text NOT NULL,
	PRIMARY KEY(`credential_id`, `action`, `result`)
);
--> statement-breakpoint
CREATE INDEX `refusals_by_due` ON `refusals` (`due_at`);--> statement-breakpoint
ALTER TABLE `audit` ADD `times` integer DEFAULT 1 NOT NULL;