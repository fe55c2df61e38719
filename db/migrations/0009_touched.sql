CREATE TABLE `touched` (
	`key` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL,
	`mark` integer NOT NULL
);
