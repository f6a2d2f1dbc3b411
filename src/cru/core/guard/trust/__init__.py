"""What a person has accepted: files and folders of projects by their content, answers that are kept."""
