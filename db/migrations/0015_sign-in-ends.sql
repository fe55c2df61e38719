ALTER TABLE `credentials` ADD `refresh_token` text;--> statement-breakpoint
ALTER TABLE `credentials` ADD `role_checked_at` integer;--> statement-breakpoint
ALTER TABLE `credentials` ADD `role_due_at` integer;--> statement-breakpoint
UPDATE `credentials` SET `expires_at` = `created_at` + CASE WHEN `member_id` IS NULL THEN 2592000000 ELSE 43200000 END WHERE `kind` = 'session' AND `expires_at` IS NULL;--> statement-breakpoint
UPDATE `access` SET `version` = `version` + 1;
