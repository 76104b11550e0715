-- add_body_column: The body as text of two bytes a letter: what is UTF-8 reads as other letters (BodyString).
alter table [dbo].[Sales] add BodyString as cast(Body as nvarchar(max))

-- add_id: Rows that are there get one each.
alter table [dbo].[Sales] add Id uniqueidentifier not null default newid()

-- add_correlationid: Read where an old sender left it; never written.
alter table [dbo].[Sales] add CorrelationId varchar(255) null

-- add_replytoaddress: As the other.
alter table [dbo].[Sales] add ReplyToAddress varchar(255) null

-- add_expires: What is there never expires.
alter table [dbo].[Sales] add Expires datetime null

-- retype_expires: UTC without a zone.
alter table [dbo].[Sales] alter column Expires datetime null

-- add_headers: Rows that are there have none, and will be exhausted.
alter table [dbo].[Sales] add Headers nvarchar(max) not null default N'{}'

-- retype_headers: In a varchar each letter beyond the code page becomes a question mark.
alter table [dbo].[Sales] alter column Headers nvarchar(max) not null

-- add_body: Rows that are there have none, and will be exhausted.
alter table [dbo].[Sales] add Body varbinary(max) null

-- retype_body: Bytes, whatever they mean.
alter table [dbo].[Sales] alter column Body varbinary(max) null

-- add_rowversion: In the order in which the rows lie there.
alter table [dbo].[Sales] add RowVersion bigint identity(1,1) not null

-- replace_rowversion: Numbers that nobody gives: another column takes the place of this one, in the order in which the rows lie there.
alter table [dbo].[Sales] drop column RowVersion;
alter table [dbo].[Sales] add RowVersion bigint identity(1,1) not null

-- retype_id: What is no uniqueidentifier cannot become one.
alter table [dbo].[Sales] alter column Id uniqueidentifier not null

-- retype_due: An instant, in UTC.
alter table [dbo].[Sales] alter column Due datetime not null

-- add_due: What is there is due now.
alter table [dbo].[Sales] add Due datetime not null default getutcdate()

-- one_per_topic: An endpoint that moves replaces its address, and subscribes nowhere twice.
alter table [dbo].[Sales] add primary key clustered (Endpoint, Topic)
