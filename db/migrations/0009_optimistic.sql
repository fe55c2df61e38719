CREATE TABLE `commits` (
	`mark` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `commits_by_position` ON `commits` (`position`);--> statement-breakpoint
CREATE TABLE `touched` (
	`key` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `touched_by_position` ON `touched` (`position`);