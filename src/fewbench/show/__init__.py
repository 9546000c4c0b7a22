"""What results show: pages as text, Markdown and HTML, and their charts."""
