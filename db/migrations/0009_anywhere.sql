CREATE TABLE `commits` (
	`mark` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `compatibility` (
	`id` integer PRIMARY KEY NOT NULL,
	`oldest_writer` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `leases` (
	`work` text PRIMARY KEY NOT NULL,
	`holder` text NOT NULL,
	`until` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `touched` (
	`key` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `touched_by_position` ON `touched` (`position`);--> statement-breakpoint
INSERT INTO `compatibility` (`id`, `oldest_writer`) VALUES (1, 1795729000374);