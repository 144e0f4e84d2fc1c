"""What a study's planned test can find, and the levels at which it is tested."""
